"""Ten public applications, rebuilt from their descriptions."""
