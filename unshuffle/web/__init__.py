"""The page in the browser: `unshuffle serve`. It calls the core and the solver; no mathematics here."""
