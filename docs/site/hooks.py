"""Hooks of mkdocs: links of pages to files outside of docs/ become links to the repository."""

import posixpath
import re

LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")
REPOSITORY = "https://github.com/plimsoll-k8s/plimsoll/blob/main/"


def on_page_markdown(markdown, page, config, files):
    """Return the text of a page with links that the site can resolve."""
    folder = posixpath.dirname("docs/" + page.file.src_path)
    known = {"docs/" + file.src_path for file in files}

    def link(match):
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        if path in known:
            return match[0]
        return match[1] + REPOSITORY + path + (match[3] or "") + match[4]

    return LINK.sub(link, markdown)
