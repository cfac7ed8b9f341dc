"""What is reported: a result as data, which becomes text, JSON, pages, Markdown and annotations."""
