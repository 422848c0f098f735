"""What the forkserver loads once, so that every local rank starts in milliseconds with torch.

Nothing that is loaded is garbage: Python looks through none of it for some, neither while it loads
(a tenth of the work), nor in a rank, which shares it, nor as the server ends (a second).
"""

import gc

from serried.runtime.run.worker import prepare_environment

was_enabled = gc.isenabled()
gc.disable()
prepare_environment(local=True)

import serried.runtime.run.loop  # noqa: E402, F401  torch reads the environment when it is loaded

gc.freeze()
if was_enabled:
    gc.enable()
