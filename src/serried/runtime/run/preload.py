"""What the forkserver loads once, so that every local rank starts in milliseconds with torch."""

from serried.runtime.run.worker import prepare_environment

prepare_environment(local=True)

import serried.runtime.run.loop  # noqa: E402, F401  torch reads the environment when it is loaded
