"""Where commands run: boxes, terminals, images and repositories."""
