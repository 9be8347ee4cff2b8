"""CRAFTML: Siblini, Kuntz and Meyer, ICML 2018."""
