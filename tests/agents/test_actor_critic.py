"""Actor-critics: against Stable-Baselines3's SAC, by hand, and where the optimum is known."""

import functools
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.agents import AgentState
from tsallax.agents.actor_critic import Noise, make_actor_critic
from tsallax.agents.actor_update import Weights
from tsallax.networks import Dense, mlp
from tsallax.operators import ACTOR_CRITICS, make_hparams
from tsallax.operators.actor_critics import Draws, q_log_density
from tsallax.policies import densities
from tsallax.types import Transition

with np.load(Path(__file__).parents[1] / "golden" / "sb3_sac.npz", allow_pickle=False) as file:
    GOLDEN = {name: jnp.asarray(x) for name, x in file.items()}
BATCH, D = GOLDEN["action"].shape
ACTOR = mlp(GOLDEN["observation"].shape[1:], (2, D), (8, 8))
CRITIC = mlp((GOLDEN["observation"].shape[1] + D,), (1,), (8, 8))


def layers(name: str, count: int) -> list[Dense]:
    return [Dense(GOLDEN[f"{name}/{i}/weight"], GOLDEN[f"{name}/{i}/bias"]) for i in range(count)]


def golden_state() -> AgentState:
    """Stable-Baselines3's weights; its actor has two last layers, ours one for both rows."""
    *hidden, mu, log_std = layers("actor", 4)
    last = Dense(*(jnp.concatenate([x, y], -1) for x, y in zip(mu, log_std, strict=True)))
    critics, frozen = (tuple(layers(f"{n}/{i}", 3) for i in (0, 1)) for n in ("critic", "target"))
    return AgentState(Weights([*hidden, last], critics, jnp.zeros(())), frozen, None)


def golden_batch() -> tuple[Transition, Noise]:
    now, following = GOLDEN["noise"]
    return Transition(*(GOLDEN[name] for name in Transition._fields)), Noise(
        now, following, jnp.stack([now, following], 1)
    )


def golden_losses(algo: str, density: str = "gaussian", **numbers) -> dict[str, float]:
    """On Stable-Baselines3's weights, batch and noise."""
    agent = make_actor_critic(ACTOR, CRITIC, ACTOR_CRITICS[algo], D, density=density)
    hp = make_hparams(algo, **{"alpha": GOLDEN["alpha"], "gamma": GOLDEN["gamma"], **numbers})
    return jax.tree.map(float, agent.losses(golden_state(), *golden_batch(), hp))


@pytest.mark.parametrize(
    ("algo", "numbers"),
    [
        ("sac", {}),
        ("tac", {"q": 1.0}),
        ("tal-ac", {"q": 1.0, "beta": 0.0}),
        ("munchausen-sac", {"beta": 0.0}),
    ],
)
def test_losses_are_those_of_stable_baselines3(algo, numbers):
    found = golden_losses(algo, **numbers)
    assert found["critic"] == pytest.approx(float(GOLDEN["critic_loss"]), rel=1e-5)
    assert found["actor"] == pytest.approx(float(GOLDEN["actor_loss"]), rel=1e-5, abs=1e-5)
    assert found["alpha"] == pytest.approx(float(GOLDEN["ent_coef_loss"]), rel=1e-5)


def test_terms_by_hand():
    """Two dimensions, q = 2, k = 1/2: k sum (pi - 1) = ((2 - 1) + (0.5 - 1))/2 = 0.25.

    value: 3 - 0.1 * 0.25 = 2.975. Advantage: 2 - (0 + 1)/2 = 1.5, times beta = 0.5, is 0.75;
    bounded above by 1 it is 0.5. Munchausen: 0.1 (ln 2 + ln 3) = 0.17918, times 0.5, is 0.08959.
    """
    x = Draws(
        Q=jnp.array(2.0),
        Q_drawn=jnp.array([0.0, 1.0]),
        log_pi=jnp.log(jnp.array([2.0, 3.0])),
        Q_next=jnp.array(3.0),
        log_pi_next=jnp.log(jnp.array([2.0, 0.5])),
    )
    hp = make_hparams("tal-ac", q=2.0, alpha=0.1, beta=0.5)
    row = ACTOR_CRITICS["tal-ac"]
    assert float(row.value(x, hp)) == pytest.approx(2.975)
    assert float(row.value(x, hp._replace(entropy=0.0))) == 3
    assert float(row.bonus(x, hp)) == pytest.approx(0.75)
    assert float(row.bonus(x, hp._replace(clip_above=1.0))) == pytest.approx(0.5)
    assert float(row.bonus(x._replace(Q=jnp.array(-2.0)), hp._replace(clip=-1.0))) == -0.5
    bonus = ACTOR_CRITICS["munchausen-sac"].bonus
    assert float(bonus(x, hp)) == pytest.approx(0.089588, abs=1e-5)
    assert float(bonus(x, hp._replace(clip_above=0.0))) == 0


@pytest.mark.parametrize("algo", ACTOR_CRITICS)
def test_the_bonus_is_nothing_at_beta_0(algo):
    x = Draws(*(jnp.ones(shape) for shape in ((), (2,), (2,), (), (2,))))
    assert float(ACTOR_CRITICS[algo].bonus(x, make_hparams(algo, beta=0.0))) == 0


def test_an_advantage_needs_no_density_of_the_replayed_action():
    """A bounded support rules replayed actions out: TAL's loss is finite, Munchausen's is not."""
    narrow = {"q": 2.0, "beta": 0.5, "clip": -jnp.inf}
    assert math.isfinite(golden_losses("tal-ac", "q-gaussian", **narrow)["critic"])
    found = golden_losses("munchausen-sac", "q-gaussian", **narrow, clip_above=jnp.inf)["critic"]
    assert not math.isfinite(found)


# A bandit: one state, Q(a) known, so that the policy is the only thing to find. ------------------

CENTRE, CURVATURE = 0.3, 2.0


@functools.cache
def bandit(density: str, q: float, alpha: float, steps: int = 1500):
    """Centre and scale that the agent finds where the reward is `-curvature (a - centre)^2`."""
    actor, critic = mlp((1,), (2, 1), (16,)), mlp((2,), (1,), (32, 32))
    agent = make_actor_critic(
        actor, critic, ACTOR_CRITICS["tac"], 1, density=density, automatic_alpha=False
    )
    hp = make_hparams("tac", q=q, alpha=alpha, learning_rate=5e-3, tau=1.0)

    @jax.jit
    def run(key):
        def step(state, key):
            k_action, k_update = jax.random.split(key)
            action = jax.random.uniform(k_action, (64, 1), minval=-1)
            reward = -CURVATURE * (action[:, 0] - CENTRE) ** 2
            seen, over = jnp.ones((64, 1)), jnp.ones(64, bool)
            batch = Transition(seen, action, reward, over, seen)
            return agent.update(state, batch, hp, k_update)

        k_init, k_run = jax.random.split(key)
        state, _ = jax.lax.scan(step, agent.init(k_init), jax.random.split(k_run, steps))
        centre, log_scale = actor.apply(state.params.actor, jnp.ones(1))[:, 0]
        return centre, jnp.exp(log_scale), agent.metrics(state, jnp.ones((4, 1)), hp)

    return jax.tree.map(float, run(jax.random.key(0)))


@pytest.mark.parametrize(
    ("density", "q"),
    [
        ("q-gaussian", 2.0),
        pytest.param("gaussian", 1.0, marks=pytest.mark.slow),
        pytest.param("gaussian", 2.0, marks=pytest.mark.slow),
    ],
)
def test_the_actor_finds_the_optimum_of_a_quadratic_bandit(density, q):
    """The width balances the reward against the entropy, by quadrature over both parameters."""
    alpha = 0.1
    centre, scale, metrics = bandit(density, q, alpha)
    z = np.asarray(
        densities.standard_draw(
            *jax.random.uniform(jax.random.key(1), (2, 4000)), 1.0 if density == "gaussian" else q
        )
    )
    k = 1.0 if q == 1 else 0.5

    def objective(parameters):
        x, s = jnp.full(len(z), parameters[0]), jnp.full(len(z), jnp.exp(parameters[1]))
        action, logs = densities.squashed(x, s, jnp.asarray(z), 1.0 if density == "gaussian" else q)
        hp = make_hparams("tac", q=q, k=k)
        cost = jax.vmap(lambda lp: q_log_density(lp[None], hp))(logs)
        return jnp.mean(alpha * cost + CURVATURE * (action - CENTRE) ** 2)

    descend = jax.jit(lambda p: p - 0.1 * jax.grad(objective)(p))
    best = jnp.array([0.0, -1.0])
    for _ in range(600):
        best = descend(best)
    assert centre == pytest.approx(float(best[0]), abs=0.08)
    assert scale == pytest.approx(float(jnp.exp(best[1])), rel=0.2)
    assert (metrics["support"] < 0.999) == (density == "q-gaussian")


def test_the_automatic_alpha_reaches_its_width():
    """A flat reward: alpha alone decides, and the target is the entropy of the width .089."""
    actor, critic = mlp((1,), (2, 1), (16,)), mlp((2,), (1,), (16,))
    hp_of = functools.partial(make_hparams, "tac", alpha=1.0, learning_rate=0.02, tau=1.0)
    for density, q in (("gaussian", 1.0), ("q-gaussian", 2.0)):
        agent = make_actor_critic(actor, critic, ACTOR_CRITICS["tac"], 1, density=density)
        hp = hp_of(q=q)

        @jax.jit
        def run(key, agent=agent, hp=hp):
            def step(state, key):
                k_action, k_update = jax.random.split(key)
                action = jax.random.uniform(k_action, (64, 1), minval=-1)
                seen, over = jnp.ones((64, 1)), jnp.ones(64, bool)
                batch = Transition(seen, action, -4 * action[:, 0] ** 2, over, seen)
                return agent.update(state, batch, hp, k_update)

            k_init, k_run = jax.random.split(key)
            state, _ = jax.lax.scan(step, agent.init(k_init), jax.random.split(k_run, 1500))
            return agent.metrics(state, jnp.ones((4, 1)), hp)

        width = float(run(jax.random.key(0))["width"])
        assert width == pytest.approx(float(densities.width_of_entropy(-1.0)), rel=0.25)
