"""Texts that the checks of several kinds of engines send."""

FOX = "The quick brown fox jumps over the lazy dog and then it rests under an old tree. "
