"""The paper's claims: criteria, measurements, verdicts."""
