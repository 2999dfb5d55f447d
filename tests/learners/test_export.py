"""Every learner's program lowers for GPU and TPU: nothing CPU-only creeps in."""

import jax
import numpy as np
import pytest

from support.configs import paper
from tsallax.learners.device import program
from tsallax.learners.host_programs import _functions
from tsallax.learners.parallel_update import plan as rollouts
from tsallax.learners.replay_device import plan as blocks
from tsallax.training.build import make_run, rollouts_of, schedule_of

SMALL = {"steps": 512, "hidden": (8,), "target_period": 256, "seeds": 2, "q": (1.5,)}
PLATFORMS = ("cuda", "tpu")
REPLAY = {**SMALL, "batch": 8, "buffer": 64}
PARALLEL = {**SMALL, "learner": "parallel", "num_envs": 4, "rollout": 8}


@pytest.mark.parametrize("env", ["CartPole-v1", "MinAtar/Breakout"])
@pytest.mark.parametrize("options", [REPLAY, PARALLEL], ids=["replay", "parallel"])
def test_the_program_of_a_period_lowers(options, env):
    config = paper(env, **options)
    run = make_run(config)
    if config.learner == "parallel":
        numbers = next(iter(rollouts(rollouts_of(config), 0)))
    else:
        numbers = next(iter(blocks(schedule_of(config), 0)))
    state = run.learner.shapes()
    compiled = program(run.learner.loop, len(run.cells))
    exported = jax.export.export(compiled, platforms=PLATFORMS)(state, run.hp, numbers)
    assert exported.platforms == PLATFORMS


def test_the_programs_around_host_environments_lower():
    run = make_run(paper("CartPole-v1", **{**REPLAY, "seeds": 1}))
    one = _functions(run.agent, apart=True)
    state = jax.eval_shape(one.init, jax.random.key(0))
    hp = jax.tree.map(lambda x: x[0], run.hp)
    arguments = (state.params, run.observation, hp, jax.random.key(0), 1)
    assert jax.export.export(one.act, platforms=PLATFORMS)(*arguments).platforms == PLATFORMS


def test_what_only_one_of_several_platforms_lacks_is_seen():
    """The Schur decomposition is there for the CPU alone."""
    schur = jax.jit(lambda x: jax.lax.linalg.schur(x)[0])
    with pytest.raises(NotImplementedError, match=r"not found for platforms \['tpu'\]"):
        jax.export.export(schur, platforms=["cpu", "tpu"])(np.eye(2, dtype=np.float32))
