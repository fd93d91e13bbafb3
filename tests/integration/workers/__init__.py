"""Workers on a real engine: its log on a real broker, workers in this process and in their own."""
