"""How the methods of components are seen: declared by adapters, listed or named by users, and patched once."""
