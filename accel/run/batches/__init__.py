"""Many inputs of one program: how they come and go, and how an interrupted batch goes on."""
