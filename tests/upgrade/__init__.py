"""Databases of earlier versions, as rows, and a program that upgrades one of them."""
