"""`python -m foliot` is the same as `foliot`."""

from foliot.cli import main

main()
