"""Reports of coverage: a page, JSON, JUnit XML, Markdown, CSV; what was won and lost; merging."""
