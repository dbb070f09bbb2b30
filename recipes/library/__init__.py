"""Recipes that ship with the program, as files beside this one."""
