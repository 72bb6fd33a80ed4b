//! Finds the homes of agents, and tells what each file in them is.
