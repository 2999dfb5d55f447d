"""A trained policy with Stable-Baselines3's interface, so that its `evaluate_policy` works."""

from collections.abc import Callable
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike

from tsallax.agents.actor_critic import ActorAgent
from tsallax.learners import AnyAgent
from tsallax.learners.rollout import by_policy, draw_actions
from tsallax.networks import Params
from tsallax.storage.files import write_named
from tsallax.training.config import Config
from tsallax.types import Box, HParams, Masked, allowed_at, bare


@lru_cache(maxsize=32)
def _programs(agent: AnyAgent) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Q and pi of a batch, and its continuous actions: compiled once for all models of an agent."""

    def choose(params, hp, observations, uniform, greedy):
        assert isinstance(agent, ActorAgent)
        by = agent.choose
        return jax.vmap(lambda x, own: by(params, x, hp, own, greedy))(observations, uniform)

    return jax.jit(jax.vmap(agent.policy, (None, 0, None))), jax.jit(choose, static_argnums=4)


class Model:
    """One cell of a run, ready to act.

    Args:
        agent: the run's agent.
        params: the cell's parameters, without a leading axis.
        hp: the cell's hyper-parameters.
        observation: shape and dtype of one observation, which may be `Masked`.
        seed: seed of the samples from pi.
        action_box: the bounds of continuous actions.
        title: a readable description of the run.
        config: the run's configuration.
    """

    def __init__(
        self,
        agent: AnyAgent,
        params: Params,
        hp: HParams,
        observation: Any,
        seed: int = 0,
        action_box: Box | None = None,
        title: str = "",
        config: Config | None = None,
    ):
        self.agent, self.params, self.hp, self.action_box = agent, params, hp, action_box
        self.observation = observation
        self._shape, self._dtype = bare(observation).shape, bare(observation).dtype
        self._title, self._config = title, config
        self._random = np.random.default_rng(seed)
        look, choose = _programs(agent)
        self._look = lambda observations: look(params, observations, hp)
        self._choose = lambda *given: choose(params, hp, *given)

    def __repr__(self) -> str:
        return f"Model: {self._title}; observations {self._shape} of {self._dtype}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"

    def policy(
        self, observation: ArrayLike, action_masks: ArrayLike | None = None
    ) -> tuple[Float[np.ndarray, "*batch A"], Float[np.ndarray, "..."]]:
        """Action values and pi, for one observation or a batch.

        In an environment with masks, `action_masks` marks the allowed actions; the others have the
        value -inf and probability 0.

        For continuous actions: the value of the policy's centre, and densities `(D, points)` over
        [-1, 1].
        """
        given, batch = self._checked(observation)
        seen = self._masked(given, batch, action_masks)
        Q, pi = map(np.asarray, self._look(seen))
        return Q.reshape(*batch, *Q.shape[1:]), pi.reshape(*batch, *pi.shape[1:])

    def _masked(self, given: np.ndarray, batch: tuple[int, ...], masks: ArrayLike | None) -> Any:
        wanted = allowed_at(self.observation)
        if wanted is None:
            if masks is not None:
                raise ValueError("this agent was trained without action masks: it takes none")
            return given
        if masks is None:
            raise ValueError(
                "this agent was trained with action masks: give action_masks, which actions are "
                "allowed"
            )
        allowed = np.asarray(masks).astype(bool)
        if allowed.shape != (*batch, *wanted.shape):
            shape = (*batch, *wanted.shape)
            raise ValueError(f"action_masks must have the shape {shape}, not {allowed.shape}")
        if not allowed.any(-1).all():
            raise ValueError("action_masks must allow at least one action")
        return Masked(given, allowed.reshape(len(given), -1))

    def _checked(self, observation: ArrayLike) -> tuple[np.ndarray, tuple[int, ...]]:
        """Returns the observation as a batch, and its original batch axes."""
        given = np.asarray(observation, self._dtype)
        if given.shape[-len(self._shape) :] != self._shape or given.ndim > len(self._shape) + 1:
            shapes = f"{self._shape}, or {('batch', *self._shape)}".replace("'", "")
            raise ValueError(f"observations have the shape {shapes}, not {given.shape}")
        if not np.isfinite(given).all():
            raise ValueError(
                "the observation has NaN or infinite numbers: there is no action for it"
            )
        batch = given.shape[: given.ndim - len(self._shape)]
        return given.reshape(-1, *self._shape), batch

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: ArrayLike | None = None,
    ) -> tuple[Shaped[np.ndarray, "..."], Any]:
        """The action, sampled from pi or (`deterministic`) argmax Q, and `state` unchanged.

        An agent trained with action masks needs those of these observations; the argument has the
        name that sb3-contrib uses.

        Continuous actions are within the environment's bounds, sampled from pi or at its centre.

        `state` and `episode_start` are for recurrent policies and have no effect here.
        """
        del episode_start
        if isinstance(self.agent, ActorAgent):
            return self._continuous(observation, deterministic), state
        Q, pi = self.policy(observation, action_masks)
        if deterministic:
            return np.asarray(np.argmax(Q, -1)), state
        return draw_actions(pi, self._random.random(pi.shape[:-1])), state

    def act(
        self, observations: Shaped[np.ndarray, "n ..."], uniform: np.ndarray, greedy: bool
    ) -> Shaped[np.ndarray, "n ..."]:
        """Actions sampled with uniform numbers in [0, 1), or greedy ones; continuous in [-1, 1].

        `uniform` has one number for each discrete action, `(2, D)` for each continuous one.
        """
        if isinstance(self.agent, ActorAgent):
            return np.asarray(self._choose(observations, uniform, greedy))
        return by_policy(self.policy)(observations, uniform, greedy)

    def _continuous(self, observation: ArrayLike, greedy: bool) -> Float[np.ndarray, "*batch D"]:
        given, batch = self._checked(observation)
        assert self.action_box is not None
        draws = self._random.random((len(given), 2, len(self.action_box.low)), np.float32)
        action = self.action_box.scale(self.act(given, draws, greedy))
        return action.reshape(*batch, -1)

    def to_onnx(self, path: str | Path) -> float:
        """Write the policy as an ONNX file: `observation` to `action_values` and `pi`, in batches.

        The graph is first checked with onnxruntime. Returns the largest difference of pi found.
        """
        from tsallax.training.onnx_file import checked_policy  # needs the extra `onnx`

        if self._config is None:
            raise ValueError("this model has no configuration: load it from a run's folder")
        if isinstance(self.observation, Masked):
            raise ValueError("a policy of actions that are not always allowed cannot be exported")
        observation = jax.ShapeDtypeStruct(self._shape, self._dtype)
        data, difference = checked_policy(
            self._config, self.params, self.hp, observation, self.policy
        )
        write_named(Path(path), data, create=True)
        return difference
