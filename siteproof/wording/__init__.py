"""Sentences made of verdicts and findings; nothing reads them back."""
