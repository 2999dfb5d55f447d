"""The text for one moment of an episode, in a video and on a terminal."""

import numpy as np

from tsallax.learners.rollout import Moment


def summary(moment: Moment) -> str:
    """The top line: the state of the episode, and how sparse the policy is."""
    episode = f"episode {moment.episode}  ·  " if moment.episode > 1 else ""
    line = f"{episode}step {moment.step:,}  ·  return {number(moment.total)}  ·  "
    if moment.action is None:
        return line + "the episode is over"
    of = len(moment.pi) if moment.pi.ndim == 1 else f"{moment.pi.size} shown"
    barred = int(np.isneginf(moment.Q).sum())
    line += f"{int(np.sum(moment.pi == 0)) - barred} of {of} actions ruled out"
    return f"{line}, {barred} not allowed" if barred else line


def is_allowed(moment: Moment, a: int) -> bool:
    """Returns whether the environment allows an action: if not, its value is -inf."""
    return not np.isneginf(moment.Q[a])


def number(x: float) -> str:
    return f"{x:,.1f}".removesuffix(".0")


def percent(p: float) -> str:
    """`p` in percent; never rounded to 0 or 100 unless it is exactly that."""
    if 0 < p < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < p < 1 else f"{100 * p:.1f} %"


def value(moment: Moment, a: int) -> str:
    """Q of one action, with the same decimals for all actions; a dash if it is not allowed."""
    if not is_allowed(moment, a):
        return "-"
    largest = np.abs(moment.Q[~np.isneginf(moment.Q)]).max()
    return f"{moment.Q[a]:.{3 if largest < 100 else 1}f}"
