"""Masks from an environment to the replay, the learner, the evaluation and the model."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tsallax
from support import masked_envs
from support.configs import paper
from support.masked_envs import ALLOWED, TOP, stairs
from tsallax.envs import CONSTRUCTORS, with_masks
from tsallax.envs.host import GymEnvs, make_host
from tsallax.learners.rollout import by_policy, host_moments, moments
from tsallax.replay.host import HostRing
from tsallax.replay.ring import make_ring
from tsallax.training.build import make_run
from tsallax.types import Masked

COMMON = {"preset": "paper", "hidden": (16,), "q": 2, "seeds": 2, "eval_episodes": 5}
SIZES = {"batch": 16, "buffer": 300, "target_period": 100, "train_period": 2, "steps": 1200}
RANDOM = {"epsilon": 1.0, "epsilon_end": 0.1, "random_warmup": True, "eval_every": 1200}
REPLAY = COMMON | SIZES | RANDOM
ROLLOUTS = {"learner": "parallel", "num_envs": 4, "rollout": 20, "minibatches": 4}
PARALLEL = COMMON | ROLLOUTS | {"target_period": 400, "steps": 800, "eval_every": 800}
HOST = {"env": "tests/Stairs-v0", "one_hot": True}


@pytest.fixture(autouse=True)
def known(monkeypatch):
    masked_envs.register()
    monkeypatch.setitem(CONSTRUCTORS, "Stairs", stairs)


def where_allowed(positions):
    """The mask that belongs to a one-hot position; at the top nothing is allowed, so all is."""
    allowed = ALLOWED[np.asarray(positions).argmax(-1)]
    return allowed | ~allowed.any(-1, keepdims=True)


def trained(env="Stairs", **settings):
    return tsallax.train(env, **settings)


@pytest.mark.parametrize(
    ("how", "where"),
    [
        (REPLAY, "compiled"),
        (PARALLEL, "host"),
        pytest.param(REPLAY, "host", marks=pytest.mark.slow),
        pytest.param(PARALLEL, "compiled", marks=pytest.mark.slow),
    ],
)
def test_a_run_never_takes_what_is_not_allowed(how, where):
    """One forbidden action would be NaN as a reward, or raise."""
    result = trained(**how, **(HOST if where == "host" else {}))
    assert (result.metrics["diverged"] == -1).all()
    assert not result.stopped
    for name in ("max_q", "action_gap", "entropy", "support", "kl"):
        assert np.isfinite(result.metrics[name]).all(), name
    assert (result.metrics["support"] <= 3).all()
    assert np.isfinite(result.evaluations[:, :, -1]).all()
    if how is REPLAY:
        assert (result.evaluations[:, :, -1] == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("how", [REPLAY, PARALLEL], ids=["replay", "parallel"])
def test_quantiles(how):
    more = {"head": "quantile", "quantiles": 3, "steps": 400, "target_period": 200}
    result = trained(**{**how, **more})
    assert (result.metrics["diverged"] == -1).all()
    assert np.isfinite(result.metrics["max_q"]).all()


PARTS = {"double": True, "n_step": 3, "prioritised": True, "dueling": True, "tau": 0.1}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["compiled", "host"])
def test_all_parts_at_once(where):
    """What a segment has after its cut may belong to no state: it must not count."""
    result = trained(**REPLAY, **PARTS, **(HOST if where == "host" else {}))
    assert (result.metrics["diverged"] == -1).all()
    assert not result.stopped
    assert np.isfinite(result.metrics["max_q"]).all()
    assert (result.evaluations[:, :, -1] == 1).all()


@pytest.mark.parametrize("env", [stairs, masked_envs.Stairs])
def test_actor_critics_refuse_masks(env):
    more = {"one_hot": True} if env is masked_envs.Stairs else {}
    with pytest.raises(ValueError, match="actions that are not always allowed"):
        tsallax.train(env, algo="tal-ac", steps=2000, hidden=(8,), **more)


def test_a_mask_that_allows_all_is_none():
    """To rounding, as epsilon/A is then computed as epsilon 1/A."""
    everything = lambda state: jnp.ones(2, bool)  # noqa: E731
    plain = CONSTRUCTORS["CartPole-v1"](time_limit=15)
    how = {**REPLAY, "steps": 200, "eval_every": 0}
    one, other = (tsallax.train(env, **how) for env in (plain, plain._replace(allowed=everything)))
    for name, values in one.metrics.items():
        np.testing.assert_allclose(other.metrics[name], values, rtol=1e-4, err_msg=name)
    for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_masks_of_both_ends_in_the_ring_on_the_device():
    """Random episodes; the mask is known from the observation beside it, also of final ones."""
    env, ring = with_masks(stairs(limit=5)), make_ring(40, 5)

    def step(carry, key):
        state, stored = carry
        k_act, k_step, k_reset = jax.random.split(key, 3)
        action = jax.random.categorical(k_act, jnp.log(env.observe(state).allowed * 1.0))
        following, outcome = env.step(state, action, k_step)
        over, fresh = outcome.terminated | outcome.truncated, env.reset(k_reset)
        after = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, following)
        cut = outcome.truncated & ~outcome.terminated
        ends = env.observe(following), env.observe(after)
        return (
            after,
            ring.add(stored, action, outcome.reward, outcome.terminated, cut, *ends),
        ), cut

    state = env.reset(jax.random.key(0))
    first = (state, ring.init(env.observe(state)))
    keys = jax.random.split(jax.random.key(1), 200)
    (_, stored), cut = jax.jit(lambda: jax.lax.scan(step, first, keys))()
    assert stored.observations.allowed.shape == (41, 1)  # four actions are half a byte
    assert int(cut.sum()) > 10
    drawn = ring.sample(stored, jax.random.key(2), 200, env.observe(state))
    for seen in (drawn.observation, drawn.next_observation):
        np.testing.assert_array_equal(seen.allowed, where_allowed(seen.observation))
    at = np.asarray(drawn.observation.observation).argmax(-1)
    assert ALLOWED[at, np.asarray(drawn.action)].all()


@pytest.mark.parametrize("stack", [0, 2])
def test_masks_of_both_ends_in_the_ring_on_the_host(stack):
    random = np.random.default_rng(0)
    ring = HostRing(1, 30, (TOP + 1,), bool, stack, masks=4)

    def seen():
        frame = np.arange(TOP + 1) == random.integers(TOP + 1)
        return Masked(frame[None], where_allowed(frame[None]))

    ring.begin(seen())
    one, none = np.ones(1, bool), np.zeros(1, bool)
    for t in range(100):
        cut = np.array([t % 7 == 0])
        final = seen()
        start = seen() if cut[0] else final
        ring.add(one, np.zeros(1, int), np.zeros(1), none, cut, cut, final, start)
    assert isinstance(ring.current(), Masked)
    drawn = ring.sample([random], 300)
    for found in (drawn.observation, drawn.next_observation):
        frame = found.observation[:, :, -1] if stack else found.observation
        np.testing.assert_array_equal(found.allowed, where_allowed(frame))
    again = HostRing(1, 30, (TOP + 1,), bool, stack, masks=4)
    again.fill(ring.arrays())
    np.testing.assert_array_equal(again.current().allowed, ring.current().allowed)
    assert "allowed" not in HostRing(1, 30, (TOP + 1,), bool, stack).arrays()


@pytest.mark.parametrize("env", ["Stairs", "tests/Stairs-v0"])
def test_a_saved_state_has_its_masks(env):
    more = {"one_hot": True} if env != "Stairs" else {}
    numbers = {"q": (2.0,), "epsilon": (1.0,), "epsilon_end": (0.1,)}
    run = make_run(paper(env, **(REPLAY | numbers | more)))
    arrays, notes = run.learner.save(run.learner.start())
    layout = run.learner.layout(notes)
    assert {n: x.shape for n, x in arrays.items()} == {n: x.shape for n, x in layout.items()}
    masks = [name for name in arrays if name.endswith("allowed")]
    assert masks
    state = run.learner.restore(arrays, notes)
    again = run.learner.save(state)[0]
    assert set(again) == set(arrays)


def test_where_nothing_is_allowed_in_jax_all_is():
    env = with_masks(stairs())
    state = stairs().reset(jax.random.key(0))._replace(x=jnp.int32(TOP))
    assert np.asarray(env.observe(state).allowed).tolist() == [True] * 4


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (lambda state: jnp.ones(4), "must give bool (4,), not float32 (4,)"),
        (lambda state: jnp.ones(3, bool), "must give bool (4,), not bool (3,)"),
    ],
)
def test_a_mask_of_another_shape_is_refused(allowed, message):
    with pytest.raises(ValueError, match="`allowed`") as error:
        tsallax.train(stairs()._replace(allowed=allowed), **REPLAY)
    assert message in str(error.value)


class Odd(masked_envs.Stairs):
    """Masks that are wrong from the first step on, or at the reset."""

    wrong = ""

    def reset(self, *, seed=None, options=None):
        start, info = super().reset(seed=seed)
        return start, {} if self.wrong == "late" else info

    def _info(self):
        mask = super()._info()["action_mask"]
        if not getattr(self, "t", 0):
            return {"action_mask": mask}
        changed = {"shape": mask[:2], "empty": 0 * mask, "word": "up"}
        return {} if self.wrong == "missing" else {"action_mask": changed.get(self.wrong, mask)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("shape", "step gave an action_mask (2,), not (4,)"),
        ("empty", "step gave an action_mask that allows no action"),
        ("missing", "step gave no action_mask, which the first reset gave"),
        ("late", "step gave an action_mask, which the first reset did not give"),
        ("word", "step gave an action_mask (), not (4,)"),
    ],
)
def test_a_wrong_mask_stops_its_environment(wrong, message, monkeypatch):
    monkeypatch.setattr(Odd, "wrong", wrong)
    if "tests/Odd-v0" not in gymnasium.registry:
        gymnasium.register("tests/Odd-v0", Odd)
    masks = make_host("tests/Odd-v0", 1, one_hot=True).gives_masks()
    assert masks == (wrong != "late")
    envs = make_host("tests/Odd-v0", 1, masks=masks, one_hot=True)
    envs.reset([0])
    envs.step(np.array([1 if ALLOWED[envs.envs[0].unwrapped.x, 1] else 2]))
    assert envs.failures == {0: message}


def test_a_last_state_may_allow_nothing():
    envs = GymEnvs("tests/Stairs-v0", 1, one_hot=True, masks=True)
    envs.reset([0])
    while True:
        at = envs.envs[0].unwrapped.x
        moves = envs.step(np.array([2 if ALLOWED[at, 2] else 1]))
        if moves.over[0]:
            break
    assert not envs.failures
    assert moves.terminated[0]
    assert moves.final.allowed.all()
    np.testing.assert_array_equal(
        moves.observation.allowed, where_allowed(moves.observation.observation)
    )


@pytest.fixture(scope="module")
def model():
    masked_envs.register()
    return tsallax.train(stairs(), **{**REPLAY, "steps": 200, "eval_every": 0}).model()


def test_a_model_keeps_to_the_masks(model):
    seen = np.eye(TOP + 1, dtype=np.float32)[:TOP].repeat(100, 0)
    masks = where_allowed(seen)
    for deterministic in (True, False):
        action, _ = model.predict(seen, deterministic=deterministic, action_masks=masks)
        assert masks[np.arange(len(seen)), action].all()
    Q, pi = model.policy(seen[0], masks[0])
    assert Q.shape == pi.shape == (4,)
    np.testing.assert_array_equal(np.isneginf(Q), ~masks[0])
    assert (pi[~masks[0]] == 0).all()


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (None, "was trained with action masks: give action_masks"),
        (np.ones(3), r"action_masks must have the shape \(4,\), not \(3,\)"),
        (np.zeros(4), "must allow at least one action"),
    ],
)
def test_a_model_refuses_what_is_no_mask(model, masks, message):
    with pytest.raises(ValueError, match=message):
        model.predict(np.eye(TOP + 1)[0], action_masks=masks)


def test_a_model_without_masks_takes_none():
    result = tsallax.train("CartPole-v1", **{**REPLAY, "steps": 200, "eval_every": 0})
    with pytest.raises(ValueError, match="without action masks"):
        result.model().predict(np.zeros(4), action_masks=[True, False])


def test_moments_tell_what_is_not_allowed(model):
    env = with_masks(stairs())
    told = list(moments(env, model.agent, model.params, model.hp, steps=5))
    host = make_host("tests/Stairs-v0", 1, render=True, masks=True, one_hot=True)
    policy = lambda seen: model.policy(*seen)  # noqa: E731
    told += list(host_moments(host, policy, by_policy(policy), steps=5))
    going = [m for m in told if m.action is not None]
    assert len(going) > 4
    for moment in going:
        assert np.isneginf(moment.Q[3])
        assert moment.pi[3] == 0
        assert not np.isneginf(moment.Q[moment.action])
