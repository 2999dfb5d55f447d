"""Videos of an agent: the rendered environment next to the action probabilities of pi."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageColor, ImageDraw, ImageFont

from tsallax.learners.rollout import Moment
from tsallax.report.curves import PALETTE
from tsallax.report.density import strip
from tsallax.report.moment_words import is_allowed, percent, summary, value
from tsallax.spelling import install
from tsallax.storage.files import Directory

Frame = UInt8[np.ndarray, "_ _ 3"]  # height, width

PAPER, INK, DIM, TRACK, HATCH = "#FAFAF7", "#2D3748", "#6B7280", "#E5E7EB", "#B4B9C2"
BLUE, VERMILLION = PALETTE[:2]
EDGE = ImageColor.getrgb(HATCH)
MAX_PICTURE = (480, 640)  # largest height and width of an enlarged picture
MARGIN, HEADER, HEADING = 16, 62, 26
MARK, BAR, PERCENT, VALUE = 20, 150, 66, 62  # widths in a row: mark, (name), bar, pi, Q
MIN_ROW, MAX_ROW = 24, 54
TEXT, SMALL, TITLE = 15, 13, 17


def frame(moment: Moment, names: Sequence[str], title: str) -> Frame:
    """Draw one frame; its size depends only on that of the picture and on the names."""
    names = tuple(names)
    picture = enlarge(moment.picture)
    high, wide = picture.shape[:2]
    inner = max(high, HEADING + MIN_ROW * len(names))
    panel = _panel(moment, names, inner)
    width = 2 * MARGIN + wide + panel.shape[1]
    canvas = _blank(_even(HEADER + inner + MARGIN), _even(width)).copy()
    canvas[:HEADER, :width] = _header(moment, title, width)
    canvas[HEADER - 1 : HEADER + high + 1, [MARGIN - 1, MARGIN + wide]] = EDGE
    canvas[[HEADER - 1, HEADER + high], MARGIN - 1 : MARGIN + wide + 1] = EDGE
    canvas[HEADER : HEADER + high, MARGIN : MARGIN + wide] = picture
    canvas[HEADER : HEADER + inner, width - panel.shape[1] : width] = panel
    return canvas


def _even(x: int) -> int:
    """Rounds up to an even number, as H.264 stores colour at half the resolution."""
    return x + x % 2


@lru_cache(4)  # filling with RGB values is slow in numpy, copying is not
def _blank(height: int, width: int) -> Frame:
    return np.full((height, width, 3), ImageColor.getrgb(PAPER), np.uint8)


def enlarge(picture: Frame) -> Frame:
    """Enlarge a picture by an integer factor, so that every pixel stays a square."""
    height, width = picture.shape[:2]
    times = max(1, min(MAX_PICTURE[0] // height, MAX_PICTURE[1] // width))
    return picture.repeat(times, 1).repeat(times, 0)


def _header(moment: Moment, title: str, width: int) -> Frame:
    image = Image.new("RGB", (width, HEADER), PAPER)
    draw = ImageDraw.Draw(image)
    _text(draw, MARGIN, 20, shorten(title, TITLE, width - 2 * MARGIN), TITLE)
    _text(draw, MARGIN, 45, summary(moment), TEXT)
    return np.asarray(image)


def _panel(moment: Moment, names: tuple[str, ...], height: int) -> Frame:
    """One row per action: mark, name, bar and percentage of pi, Q."""
    bar = MARK + _name_width(names)
    right = bar + BAR + PERCENT + VALUE
    image = Image.new("RGB", (right + MARGIN, height), PAPER)
    draw = ImageDraw.Draw(image)
    _text(draw, MARK, HEADING // 2 - 4, "action", SMALL, DIM)
    _text(draw, bar, HEADING // 2 - 4, "pi" if moment.pi.ndim > 1 else "probability pi", SMALL, DIM)
    _text(draw, right, HEADING // 2 - 4, "Q", SMALL, DIM, "rm")
    row = min(MAX_ROW, (height - HEADING) // len(names))
    for a, name in enumerate(names):
        y = HEADING + row * a
        if moment.action is None:  # no action is chosen in a terminal state
            _text(draw, MARK, y + row // 2, name, TEXT, DIM)
            _track(draw, bar, y, row)
        elif moment.pi.ndim > 1:
            x, top, right, bottom = _track(draw, bar, y, row)
            action = float(np.asarray(moment.action)[a])
            curve = strip(moment.pi[a], action, bottom - top, right - x, TRACK)
            image.paste(Image.fromarray(curve), (x, top))
            _text(draw, MARK, y + row // 2, f"{name} {action:+.2f}", TEXT)
        else:
            _row(draw, bar, y, row, moment, a, name)
    return np.asarray(image)


def _row(
    draw: ImageDraw.ImageDraw, bar: int, y: int, row: int, moment: Moment, a: int, name: str
) -> None:
    p, middle, right = float(moment.pi[a]), y + row // 2, bar + BAR + PERCENT
    chosen, ruled_out = a == moment.action, p == 0
    colour = VERMILLION if chosen else BLUE
    if chosen:
        box = (0, y + 1, right + VALUE + 6, y + row - 2)
        draw.rounded_rectangle(box, 5, outline=VERMILLION, width=2)
        draw.polygon([(7, middle - 5), (7, middle + 5), (14, middle)], colour)
    _text(draw, MARK, middle, name, TEXT, DIM if ruled_out else INK)
    track = _track(draw, bar, y, row)
    if ruled_out:
        end = MARK + _font(TEXT).getlength(name)
        draw.line((MARK - 3, middle + 1, end + 3, middle + 1), INK)
        _hatch(draw, track)
        draw.rectangle((bar + BAR // 2 - 40, middle - 8, bar + BAR // 2 + 40, middle + 8), PAPER)
        word = "ruled out" if is_allowed(moment, a) else "not allowed"
        _text(draw, bar + BAR // 2, middle, word, SMALL, INK, "mm")
        _text(draw, right, middle, "0", TEXT, DIM, "rm")
    else:
        if p > 0:  # NaN has no bar
            x0, y0, x1, y1 = track
            draw.rectangle((x0, y0, x0 + max(2, round(p * (x1 - x0))), y1), colour)
        _text(draw, right, middle, percent(p), TEXT, INK, "rm")
    _text(draw, right + VALUE, middle, value(moment, a), SMALL, DIM, "rm")


def _track(draw: ImageDraw.ImageDraw, bar: int, y: int, row: int) -> tuple[int, int, int, int]:
    gap = max(4, row // 4)
    box = (bar, y + gap, bar + BAR, y + row - gap)
    draw.rectangle(box, TRACK)
    return box


def _hatch(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int]) -> None:
    x0, y0, x1, y1 = box
    height = y1 - y0
    draw.rectangle(box, PAPER, HATCH)
    for x in range(x0 - height, x1, 8):  # from (x, y1) up to (x + height, y0), cut at the sides
        low, high = max(0, x0 - x), min(height, x1 - x)
        draw.line((x + low, y1 - low, x + high, y1 - high), HATCH)


def _text(
    draw: ImageDraw.ImageDraw,
    x: int,
    y: int,
    text: str,
    size: int,
    colour: str = INK,
    anchor: str = "lm",
) -> None:
    stamp, dx, dy = _stamp(text, size, anchor)
    draw.bitmap((x + dx, y + dy), stamp, colour)


@lru_cache(4096)  # most texts are drawn repeatedly, and drawing them is most of the work
def _stamp(text: str, size: int, anchor: str) -> tuple[Image.Image, int, int]:
    """The text as a mask, and the offset of its corner from the anchor."""
    x0, y0, x1, y1 = map(round, _font(size).getbbox(text, anchor=anchor))
    mask = Image.new("L", (max(1, x1 - x0), max(1, y1 - y0)))
    ImageDraw.Draw(mask).text((-x0, -y0), text, 255, _font(size), anchor)
    return mask, x0, y0


@cache
def shorten(text: str, size: int, width: int) -> str:
    if _font(size).getlength(text) <= width:
        return text
    while text and _font(size).getlength(f"{text} ...") > width:
        text = text[:-1]
    return f"{text.rstrip()} ..."


@cache
def _font(size: int) -> Any:  # the type depends on whether pillow was built with FreeType
    return ImageFont.load_default(size)


@cache
def _name_width(names: tuple[str, ...]) -> int:
    return 14 + round(max(_font(TEXT).getlength(name) for name in [*names, "action"]))


@cache
def ffmpeg() -> str | None:
    """The path of ffmpeg: imageio's own or the system's."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return None


def check_target(path: Path) -> None:
    """Refuse a target that could not be written, before any frame is made."""
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"a video's name ends in {' or '.join(WRITERS)}, not {path.name!r}")
    if path.suffix.lower() == ".mp4" and ffmpeg() is None:
        raise ValueError(f"an MP4 needs ffmpeg: {install('video')}, or give a .gif")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is no folder")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")


def write_video(path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Write `.mp4` or `.gif`; the file gets its name only when it is complete.

    It is made in a temporary folder, as ffmpeg would follow a link of that name in a run folder.
    """
    check_target(path)
    with tempfile.TemporaryDirectory() as made:
        part = Path(made) / f"video{path.suffix.lower()}"
        WRITERS[part.suffix](part, frames, fps)
        with (
            part.open("rb") as source,
            Directory(path.parent) as folder,
            folder.replacing(path.name) as file,
        ):
            shutil.copyfileobj(source, file)


def _write_mp4(path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Calls ffmpeg directly, as imageio's writer does not report failures, and forks under jax."""
    images, whole = iter(frames), False
    first = next(images)
    height, width = first.shape[:2]
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(fps)]
    coding = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
    process = subprocess.Popen(
        [ffmpeg() or "ffmpeg", "-v", "error", "-y", *source, "-i", "-", *coding, str(path)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C must reach only the command
    )
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            for image in chain([first], images):
                pipe.write(image.tobytes())
            pipe.flush()
            whole = True
    finally:
        with process.stderr as pipe:
            reason = pipe.read().decode(errors="replace").strip().splitlines()
        process.wait()
    if process.returncode or not whole:
        raise OSError(f"ffmpeg could not write {path}: {reason[0] if reason else 'it ended'}")


def _write_gif(path: Path, frames: Iterable[Frame], fps: int) -> None:
    """Merges consecutive equal frames into one that is shown longer."""

    def quantised(image: Frame) -> Image.Image:
        # Nearly exact on drawings; an octree is faster but loses MinAtar's empty cells.
        # The unused colour marks unchanged pixels, which reduces the file to a third of the size.
        return Image.fromarray(image).quantize(255, Image.Quantize.MAXCOVERAGE)

    images = map(quantised, frames)
    first = next(images)
    # A GIF's delay is in hundredths of a second, and viewers treat less than two of them as ten.
    delay = 10 * max(2, round(100 / fps))
    first.save(path, save_all=True, append_images=images, duration=delay, loop=0)


WRITERS: dict[str, Callable[[Path, Iterable[Frame], int], None]] = {
    ".mp4": _write_mp4,
    ".gif": _write_gif,
}
