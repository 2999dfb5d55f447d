"""The policy explorer: one self-contained page that computes policies interactively."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from string import Template

from tsallax import __version__


def explorer_page() -> str:
    """The page, whose policy allows only its own style and scripts, and no requests."""
    style, maths, page, template = (
        files(__name__).joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "maths.js", "page.js", "template.html")
    )
    security = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",  # for its empty icon, without which a browser requests one
            f"style-src {_hash(style)}",
            f"script-src {_hash(maths)} {_hash(page)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {"security": security, "style": style, "maths": maths, "page": page}
    return Template(template).substitute(parts, version=__version__)


def _hash(text: str) -> str:
    """The hash source of an inline block in a Content-Security-Policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
