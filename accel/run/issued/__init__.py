"""What early calls do: begin, wait inside others, are turned away, read prompts ahead."""
