"""The proof of permits and breakpoints: limited steps, and what people do to limits, breakpoints, runs and steps."""
