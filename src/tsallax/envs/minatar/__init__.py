"""The five MinAtar games (Young and Tian, 2019), state-exact; the rules: docs/minatar-rules.md."""
