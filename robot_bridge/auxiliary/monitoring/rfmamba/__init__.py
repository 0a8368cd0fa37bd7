"""RFMamba: where a person is and what they do, from radar echoes (ICLR 2025)."""
