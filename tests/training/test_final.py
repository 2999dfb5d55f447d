"""What is said about the scores of a run."""

import numpy as np

from tsallax.training.final import evaluation_in_words


def test_an_evaluation_says_what_is_solved():
    returns = np.array([[500.0, 480.0], [500.0, 440.0]])
    both = evaluation_in_words("CartPole-v1", returns)
    assert both == "return 480.0 over 4 episodes, 1 of 2 solved (475 or more)"
    alone = [evaluation_in_words("CartPole-v1", cell[None]) for cell in returns]
    assert alone == [
        "return 490.0 over 2 episodes, solved (475 or more)",
        "return 470.0 over 2 episodes, not solved (475 or more)",
    ]
    lander = evaluation_in_words("LunarLander-v3", returns[:1])
    assert lander == "return 490.0 over 2 episodes, solved (200 or more)"
    assert evaluation_in_words("MinAtar/Breakout", returns) == "return 480.0 over 4 episodes"
