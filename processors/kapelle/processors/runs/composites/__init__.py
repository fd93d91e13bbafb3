"""Steps that start instances of their own, and wait for them: foreach, while and subworkflow."""
