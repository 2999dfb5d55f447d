"""Access to the Hugging Face Hub for `push` and `pull`, through its own client (extra `hub`).

The client authenticates the user by HF_TOKEN or `hf auth login`.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tsallax import __version__
from tsallax.spelling import install
from tsallax.storage.files import Directory, write_all
from tsallax.storage.portable import LIMITS, check_size

_LOGIN = "; to say who you are: hf auth login, or HF_TOKEN"


def make_client() -> Any:
    """The client, `HfApi`."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars
    except ImportError:
        raise ValueError(f"the Hub needs another package: {install('hub')}") from None
    if not sys.stderr.isatty():
        disable_progress_bars()
    return HfApi(library_name="tsallax", library_version=__version__)


@contextmanager
def in_one_line(repo: str) -> Iterator[None]:
    """Turn the client's exceptions, which are of many types, into one-line errors with advice."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        yield
    except HFValidationError:
        raise ValueError(f"a repository is USER/NAME, not {repo!r}") from None
    except RepositoryNotFoundError:
        raise ValueError(f"there is no {repo} on the Hub, or you may not see it{_LOGIN}") from None
    except HfHubHTTPError as error:
        code = error.response.status_code
        login = _LOGIN if code in (401, 403) else ""
        said = " ".join((error.server_message or str(error)).split())[:200]
        raise ValueError(f"the Hub refused {repo} ({code}): {said}{login}") from None
    except Exception as error:  # no network, or the errors of httpx and hf_xet for that
        if isinstance(error, ValueError) or getattr(error, "errno", None):  # ours, or the disk's
            raise
        words = dict.fromkeys(map(str, (error, error.__cause__ or error)))
        said = re.sub(r"\[Errno -?\d+\] ", "", " ".join(" ".join(words).split()))[:200]
        raise ValueError(f"the Hub did not answer: {said or type(error).__name__}") from None


def files_of(client: Any, repo: str, revision: str) -> tuple[str, dict[str, int]]:
    """The commit, and its files that belong to a run folder, with their sizes.

    Only known names are taken from the listing, so none can refer to another place.
    """
    info = client.model_info(repo, revision=revision or None, files_metadata=True)
    sizes = {one.rfilename: int(one.size or 0) for one in info.siblings or ()}
    return str(info.sha), {name: sizes[name] for name in LIMITS if name in sizes}


def download(repo: str, commit: str, name: str, folder: Directory) -> None:
    """Write a file as it arrives, up to the size limit of such a file."""
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    url, headers = hf_hub_url(repo, name, revision=commit), build_hf_headers()
    with get_session().stream("GET", url, headers=headers) as response, folder.create(name) as file:
        hf_raise_for_status(response)
        size = 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            check_size(name, size)
            write_all(file, chunk)
