"""``python -m accel``: the command `accel`."""

from .cli import main

if __name__ == "__main__":
    main()
