"""The shapes of answers, for the OpenAPI document alone: at run time nobody makes one, and nothing is checked by them.

Answers are dictionaries that `json_response` encodes. `tests/unit/api/test_answers.py` compares real answers with these
shapes. A member with a default of UNSET may be absent; one that may be null says so; all others are always there.
"""
