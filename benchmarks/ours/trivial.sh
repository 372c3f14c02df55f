# shellcheck shell=sh
# The least that a check can measure.
echo "program=trivial" >>facts
echo "answer 1"
