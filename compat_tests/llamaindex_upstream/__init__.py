"""LlamaIndex core's own tests on accelerated objects: `python -m compat_tests.llamaindex_upstream`."""
