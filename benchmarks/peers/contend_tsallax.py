"""tsallax itself: whole target periods of the compiled loop, or steps of the host loop."""

from turns import Turns, arguments

from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

work, options = arguments()
turns = Turns(work.batch, work.train_period, settle=work.target_period)
config = Config(
    work.env,
    preset="paper",
    algo=options.algo,
    q=(2.0,),
    seeds=options.seeds,
    first_seed=options.first_seed,
    steps=10**9,
    buffer=work.buffer,
    target_period=work.target_period,
    epsilon=(work.epsilon,),
    epsilon_end=(work.epsilon,),
)
run = make_run(resolve(config))
state = run.learner.start()
if run.config.loop == "host":
    turns.settle = 0  # everything is compiled by then
    turns.fill = lambda: state.replay.frames.fill(0)
    for _ in run.learner.train(state, lambda *_: turns.done()):
        pass
for _ in run.learner.train(state, lambda *_: None):
    turns.done(work.target_period * options.seeds)
