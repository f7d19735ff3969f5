"""Which jobs ran where and when: one type for every source."""
