"""The commands, a file for each task or tool: parsing and printing only. What they do is elsewhere."""
