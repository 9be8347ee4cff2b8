"""OPLT: Jasinska-Kobus, Wydmuch, Thiruvenkatachari and Dembczyński, AISTATS 2021."""
