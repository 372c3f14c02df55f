"""The chapters of a report, one a file: `chapter(material)` gives a Section, or None."""
