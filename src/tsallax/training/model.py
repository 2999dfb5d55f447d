"""A trained policy in Stable-Baselines3's words, so that its `evaluate_policy` runs on it."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from tsallax.agents import Agent
from tsallax.learners.rollout import draw_actions
from tsallax.networks import Params
from tsallax.types import HParams


class Model:
    """One cell of a run, ready to act.

    Args:
        agent: the run's.
        params: the cell's own, without a leading axis.
        hp: the cell's own.
        observation: shape and dtype of one observation.
        seed: of the draws from pi.
    """

    def __init__(
        self,
        agent: Agent,
        params: Params,
        hp: HParams,
        observation: jax.ShapeDtypeStruct,
        seed: int = 0,
    ):
        self.agent, self.params, self.hp = agent, params, hp
        self._shape, self._dtype = observation.shape, observation.dtype
        self._random = np.random.default_rng(seed)
        look = jax.jit(jax.vmap(agent.policy, (None, 0, None)))
        self._look = lambda observations: look(params, observations, hp)

    def policy(
        self, observation: ArrayLike
    ) -> tuple[Float[np.ndarray, "*batch A"], Float[np.ndarray, "*batch A"]]:
        """Action values and pi, of one observation or of a batch."""
        given = np.asarray(observation, self._dtype)
        if given.shape[-len(self._shape) :] != self._shape or given.ndim > len(self._shape) + 1:
            raise ValueError(f"observations here are {self._shape}, one or a batch: {given.shape}")
        Q, pi = self._look(given.reshape(-1, *self._shape))
        batch = given.shape[: given.ndim - len(self._shape)]
        return np.asarray(Q).reshape(*batch, -1), np.asarray(pi).reshape(*batch, -1)

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Int[np.ndarray, "*batch"], Any]:
        """The action, by pi or (`deterministic`) argmax Q, and `state` as it came.

        `state` and `episode_start` are for recurrent policies, which this is not.
        """
        del episode_start
        Q, pi = self.policy(observation)
        if deterministic:
            return np.asarray(np.argmax(Q, -1)), state
        return draw_actions(pi, self._random.random(pi.shape[:-1])), state
