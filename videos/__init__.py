"""Pictures as files: `writer` streams them into MP4, GIF and PNG, `export` does it for a whole run."""
