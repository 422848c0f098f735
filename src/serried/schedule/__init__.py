"""Pipeline schedules: one file each, from sizes to each rank's list of actions."""

from serried.schedule.one_f_one_b import ideal_bubble, one_f_one_b

__all__ = ["ideal_bubble", "one_f_one_b"]
