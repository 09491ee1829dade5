"""Many runs of small, different programs in one process, some of them cancelled, failing, stalled or abandoned.

Nothing here knows Accel but by `accelerate`, `register`, `pure`, `settle` and `report()`. Run it by
`python -m compat_tests.soak`.
"""
