"""What plain ReFrame has left, perflogs and run reports, as rows of the history."""
