"""``python -m serried`` is ``serried``."""

from serried.views.cli.entry import main

if __name__ == "__main__":
    main()
