"""The loops and Ifs of a model and the answers of the rules about them: data, JSON and text."""
