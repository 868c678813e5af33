"""The pipeline file: its shape, its reading with file:line:column, its faults, its JSON schema."""
