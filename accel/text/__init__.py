"""Values as trees, texts made of them, and templates: what an input is made of, and what becomes of it."""
