"""A trained policy as an ONNX file, compared with ours before it is returned."""

import math
from collections.abc import Callable
from functools import reduce

import jax
import numpy as np

from tsallax.spelling import install

try:
    import onnxruntime

    from tsallax import export
except ImportError as error:
    raise ValueError(f"this needs {error.name}: {install('onnx')}") from None

from tsallax import __version__
from tsallax.agents.actor_update import Weights
from tsallax.networks import Dense, Params
from tsallax.operators import ALGORITHMS
from tsallax.operators.targets import boltzmann, hard
from tsallax.policies import tsallis_policy
from tsallax.training.config import CLOSED, Config
from tsallax.types import HParams, Policy

INPUT, OUTPUTS = "observation", ("action_values", "pi")
# Number of observations; tolerance of pi given equal values (absolute) and of values (relative).
TRIALS, TOLERANCE = 64, 1e-5
ACTORS = 1e-4  # tolerance of an actor's pi: its logits, of the size of Q/alpha, are no output


def checked_policy(
    config: Config,
    params: Params,
    hp: HParams,
    observation: jax.ShapeDtypeStruct,
    own: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> tuple[bytes, float]:
    """The file, and the largest difference of pi from our `own` policy's on random observations.

    A policy whose graph does not agree is refused. The graph's float32 values are rounded
    differently, which a small alpha magnifies, so pi is compared at the graph's own values.
    """
    _check_exportable(config, float(hp.q))
    data = policy_file(config, params, hp, observation)
    given = random_observations(observation, TRIALS)
    Q, pi = run_file(data, given)
    own_Q, own_pi = own(given)
    same = np.abs(Q - own_Q).max() <= TOLERANCE * (1 + np.abs(own_Q).max())
    if _learned(config):
        same &= np.abs(pi - own_pi).max() <= ACTORS
    elif _own_policy(config.algo) is None:
        exact = tsallis_policy(Q, float(hp.q), _alpha(params, hp), float(hp.k))
        same &= np.abs(pi - np.asarray(exact)).max() <= TOLERANCE
    if not same:
        raise ValueError("the ONNX graph does not agree with this policy: it is not exported")
    return data, float(np.abs(pi - own_pi).max())


def _check_exportable(config: Config, q: float) -> None:
    if config.algo not in ALGORITHMS and not config.actor:
        raise ValueError(f"{config.algo} has continuous actions: only discrete ones are exported")
    if config.network == "own":
        raise ValueError("a custom network cannot be exported, only the built-in ones")
    own = _own_policy(config.algo)
    if own is None and config.policy != "exact" and q not in CLOSED:
        raise ValueError(f"the policy {config.policy!r} cannot be exported: only the exact one")


def _learned(config: Config) -> bool:
    """Returns whether the policy is a network of its own."""
    return config.actor not in (None, "exact")


def _own_policy(algo: str) -> Policy | None:
    return ALGORITHMS[algo].policy if algo in ALGORITHMS else None


def _alpha(params: Params, hp: HParams) -> float:
    """The alpha in effect, which is learned if it is automatic."""
    learned = params.log_alpha if isinstance(params, Weights) else 0.0
    return float(hp.alpha) * math.exp(float(learned))


def policy_file(
    config: Config, params: Params, hp: HParams, observation: jax.ShapeDtypeStruct
) -> bytes:
    """The graph of the network and of its policy."""
    graph = export.Graph()
    critics = params.critics if isinstance(params, Weights) else (params,)
    layers = jax.tree.leaves(critics[0], is_leaf=lambda x: isinstance(x, Dense))
    outputs = np.shape(layers[-1].bias)[0]
    rows = outputs // (config.quantiles if config.head == "quantile" else 1)
    num_actions = rows - bool(config.dueling)

    def values(params: Params) -> export.Value:
        return export.action_values(
            config.network,
            params,
            export.Value(graph, INPUT),
            observation,
            num_actions,
            stacked=bool(config.stack),
            layer_norm=config.layer_norm,
            dueling=bool(config.dueling),
        )

    Q = reduce(export.Value.minimum, map(values, critics))
    numbers = {"q": float(hp.q), "alpha": _alpha(params, hp), "k": float(hp.k)}
    if _learned(config):
        logits = values(params.actor)
        pi = _policy(config.algo, logits, num_actions, **{**numbers, "alpha": 1.0})
    else:
        pi = _policy(config.algo, Q, num_actions, **numbers)
    about = {"environment": config.env, "algorithm": config.algo}
    about |= {name: f"{value:g}" for name, value in numbers.items()}
    return graph.model(
        {INPUT: (observation.dtype, observation.shape)},
        {name: (value, num_actions) for name, value in zip(OUTPUTS, (Q, pi), strict=True)},
        about,
        __version__,
    )


def _policy(
    algo: str, Q: export.Value, num_actions: int, q: float, alpha: float, k: float
) -> export.Value:
    own = _own_policy(algo)
    if own is hard or (own is None and math.isinf(q)):
        return export.greedy(Q)
    if own is boltzmann or q == 1:
        return export.softmax(Q, alpha if own else k * alpha)
    if q == 2:
        return export.sparsemax(Q, 2 * k * alpha, num_actions)
    return export.entmax(Q, q, alpha * k * q, num_actions)


def random_observations(observation: jax.ShapeDtypeStruct, count: int) -> np.ndarray:
    """Random bits, bytes or normal numbers, by the dtype of the observations."""
    rng, shape = np.random.default_rng(0), (count, *observation.shape)
    if observation.dtype in (np.bool_, np.uint8):
        return rng.integers(0, 2 if observation.dtype == np.bool_ else 256, shape).astype(
            observation.dtype
        )
    return rng.normal(size=shape).astype(observation.dtype)


def run_file(data: bytes, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Action values and pi as computed by onnxruntime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    Q, pi = session.run(list(OUTPUTS), {INPUT: observations})
    return np.asarray(Q), np.asarray(pi)
