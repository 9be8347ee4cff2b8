"""FastXML (Prabhu and Varma 2014) and PfastreXML (Jain, Prabhu and Varma 2016)."""
