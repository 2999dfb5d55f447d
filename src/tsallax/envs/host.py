"""Environments on the host: Gymnasium's, one per cell, stepped together.

An environment that raises, hangs or returns non-finite numbers is stopped, with a message in
`failures`; the others continue.
"""

import queue
import threading
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import numpy as np
from jaxtyping import Bool, Float, Shaped, UInt8

from tsallax.envs import kind_of, refuse_foreign
from tsallax.envs.actions import action_box, action_names, nobody
from tsallax.envs.spaces import MASK, EnvironmentStoppedError, first_line, sight_of
from tsallax.spelling import install
from tsallax.types import Box as ActionBox
from tsallax.types import stacked


class Moves(NamedTuple):
    """The result of a step. The leading axis is the environments; observations may be `Masked`."""

    observation: Any  # where to act next, after a reset if need be
    reward: Float[np.ndarray, "n"]
    terminated: Bool[np.ndarray, "n"]  # no bootstrap
    truncated: Bool[np.ndarray, "n"]
    over: Bool[np.ndarray, "n"]  # the episode ended; a lost life may terminate without it
    final: Any  # the next observation, before a reset


@runtime_checkable
class HostEnvs(Protocol):
    """Several environments of one kind. Those in `failures` return zeros from then on.

    Actions are indices or, with an `action_box`, vectors in [-1, 1] that are scaled to its bounds.
    `reset` leaves environments with the seed None unchanged. The action `nobody` of `envs.actions`
    is for environments that are not used: they need not be stepped, and their rows are undefined.
    """

    count: int
    observation: Any  # its shape and dtype; a `Masked` of them if it comes with a mask
    action_names: tuple[str, ...]
    action_box: ActionBox | None
    time_limit: int | None
    failures: dict[int, str]

    def gives_masks(self) -> bool: ...
    def reset(self, seeds: Sequence[int | None]) -> Any: ...
    def step(self, actions: Shaped[np.ndarray, "n ..."]) -> Moves: ...
    def picture(self) -> UInt8[np.ndarray, "height width 3"]: ...
    def close(self) -> None: ...


class GymEnvs:
    """`n` Gymnasium environments.

    Args:
        env_id: a name for `gymnasium.make`, `module:Name-v0` included.
        n: number of environments.
        timeout: seconds that a step or reset may take; 0 for no limit.
        render: render the state after each step, for `picture`.
        one_hot: encode discrete observations as one-hot vectors.
        masks: whether it provides action masks, see `gives_masks`.
        source: makes environments and takes them back, if they are not known by name.
        options: options of `gymnasium.make`, such as `max_episode_steps`.
    """

    def __init__(
        self,
        env_id: str,
        n: int,
        timeout: float = 0.0,
        render: bool = False,
        one_hot: bool = False,
        masks: bool = False,
        source: Any = None,
        **options: Any,
    ):
        self.count, self.timeout, self.failures, self.render = n, timeout, {}, render
        self.shown = np.zeros((1, 1, 3), np.uint8)
        if render:
            options["render_mode"] = "rgb_array"
        self.source = source
        self.envs = [source.make() if source else make_one(env_id, **options) for _ in range(n)]
        first = self.envs[0]
        self.action_box = action_box(env_id, first.action_space)
        self.sight = sight_of(env_id, first.observation_space, first.action_space, one_hot, masks)
        self.observation = self.sight.observation
        self.time_limit = None if first.spec is None else first.spec.max_episode_steps
        self.first_action = int(getattr(first.action_space, "start", 0))
        self.action_names = action_names(first)

    def gives_masks(self) -> bool:
        """Returns whether the first environment, which is reset, provides action masks."""
        return bool(self._try(0, lambda env, seed: MASK in env.reset(seed=seed)[1], 0))

    def reset(self, seeds: Sequence[int | None]) -> Any:
        starts = [
            None if seed is None else self._try(i, self._reset, int(seed))
            for i, seed in enumerate(seeds)
        ]
        blank = self.sight.blank()
        return stacked([blank if start is None else start for start in starts])

    def step(self, actions: Shaped[np.ndarray, "n ..."]) -> Moves:
        blank = self.sight.blank()
        none = (blank, 0.0, False, False, False, blank)
        skipped = (actions == nobody(self.action_box)).reshape(self.count, -1).all(-1)
        given = self.action_box.scale(actions) if self.action_box else actions
        rows = [
            (None if skipped[i] else self._try(i, self._step, a)) or none
            for i, a in enumerate(given)
        ]
        observation, reward, terminated, truncated, over, final = zip(*rows, strict=True)
        return Moves(
            stacked(observation),
            np.array(reward, np.float32),
            np.array(terminated),
            np.array(truncated),
            np.array(over),
            stacked(final),
        )

    def picture(self) -> UInt8[np.ndarray, "height width 3"]:
        return self.shown

    def close(self) -> None:
        for i, env in enumerate(self.envs):
            if self.source:
                self.source.give_back(env)
            elif i not in self.failures:
                env.close()

    def _try(self, i: int, call: Callable[..., Any], argument: Any) -> Any:
        """Returns the result of the call, or None if the environment has failed, now or before."""
        if i in self.failures:
            return None
        found, why = attempt(self.timeout, lambda: call(self.envs[i], argument))
        if why:
            self.failures[i] = why
        return found

    def _reset(self, env: gymnasium.Env, seed: int | None) -> Any:
        start = self.sight.read(*env.reset(seed=seed), "reset")
        if seed is not None:
            self._show(env)
        return start

    def _show(self, env: gymnasium.Env) -> None:
        if self.render:
            self.shown = np.asarray(env.render(), np.uint8)

    def _step(self, env: gymnasium.Env, action: Any) -> tuple[Any, ...]:
        given, reward, terminated, truncated, info = env.step(self._own(env, action))
        final = self.sight.read(given, info, "step", last=bool(terminated))
        reward = float(reward)  # type: ignore[arg-type]
        if not np.isfinite(reward):
            raise EnvironmentStoppedError(f"step gave the reward {reward}")
        self._show(env)
        over = bool(terminated or truncated)
        start = self._reset(env, None) if over else final
        return start, reward, bool(terminated), bool(truncated), over, final

    def _own(self, env: gymnasium.Env, action: Any) -> Any:
        """The action in the environment's own format, within its bounds."""
        if self.action_box is None:
            return self.first_action + int(action)
        if not np.isfinite(action).all():
            raise EnvironmentStoppedError("the policy gave an action that is not finite")
        return action.astype(env.action_space.dtype)


def attempt(seconds: float, call: Callable[[], Any]) -> tuple[Any, str]:
    """Returns the result of the call, and the error if it failed."""
    try:
        return within(seconds, call), ""
    except EnvironmentStoppedError as failure:
        return None, str(failure)
    except Exception as error:  # a user's environment may raise anything
        return None, f"{type(error).__name__}: {error}"


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """Returns or raises as `call` does. A call that takes longer is abandoned in its thread."""
    if not seconds:
        return call()
    answers: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((call(), None))
        except Exception as error:  # raised again in the thread that waits
            answers.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        value, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise EnvironmentStoppedError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return value


EXTRAS = {"box2d": "box2d", "mujoco": "mujoco"}  # extras by a word in Gymnasium's error message


def make_one(env_id: str, **options: Any) -> gymnasium.Env:
    """Calls `gymnasium.make`, with one-line errors that say what to do."""
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        extra = next((own for word, own in EXTRAS.items() if word in str(error).lower()), None)
        hint = install(extra) if extra else first_line(error)
        raise ValueError(f"{env_id} needs another package: {hint}") from None
    except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        raise ValueError(f"{env_id} cannot be made: {first_line(error)}") from None
    except Exception as error:  # a user's environment may raise anything
        what = f"{type(error).__name__}: {first_line(error)}"
        raise ValueError(f"{env_id} cannot be made: {what}") from error


def make_host(
    env_id: str,
    n: int,
    timeout: float = 0.0,
    render: bool = False,
    masks: bool = False,
    **options: Any,
) -> HostEnvs:
    """Make `n` host environments of that name, by Gymnasium or the emulator."""
    if kind_of(env_id) == "atari":
        from tsallax.envs.atari import AtariEnvs

        refuse_foreign(env_id, AtariEnvs, options)
        if timeout:
            raise ValueError(f"{env_id} runs in the emulator's own threads: it has no time-out")
        return AtariEnvs(env_id, n, **options)
    limit, one_hot = options.pop("time_limit", None), bool(options.pop("one_hot", False))
    if options:
        raise ValueError(f"{env_id} has no option {', '.join(sorted(options))}")
    own = {} if limit is None else {"max_episode_steps": limit}
    return GymEnvs(env_id, n, timeout, render, one_hot, masks, **own)


def spaces_of(env_id: str, one_hot: bool = False) -> tuple[Any, ActionBox | None]:
    """The shape and dtype of an environment's observations, and the bounds of its actions."""
    one = make_host(env_id, 1, one_hot=one_hot)
    one.close()
    return one.observation, one.action_box


def find_registered(env_id: str, native: Collection[str]) -> None:
    """Refuse a name that Gymnasium does not know, with the nearest one as a hint."""
    package, _, name = env_id.rpartition(":")
    if package.startswith("."):
        raise ValueError(
            f"unknown environment {env_id!r}; before the colon stands a package, no path"
        )
    try:
        if package:
            import_module(package)  # registers the name
        gymnasium.spec(name)
    except Exception as error:  # importing a user's package may raise anything
        known = {name.lower(): name for name in (*native, *gymnasium.registry)}
        near = get_close_matches(name.lower(), known, n=1)
        if not isinstance(error, (gymnasium.error.Error, ValueError)):
            hint = first_line(error)
        elif near:
            hint = f"did you mean {known[near[0]]!r}?"
        else:
            hint = f"there are {', '.join(native)}, and Gymnasium's"
        raise ValueError(f"unknown environment {env_id!r}; {hint}") from None
