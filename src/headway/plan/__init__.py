"""Which hardware, batch and price give which speed: a model of step time fitted to public measurements."""
