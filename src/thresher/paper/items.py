"""All items, in the order of the paper."""

from thresher.paper import (
    figure_free_initial,
    figure_lowrank_free_initial,
    figure_lowrank_r5,
    figure_lowrank_r15,
    figure_strong,
    figure_weak_independent,
    figure_weak_s,
    figure_weak_t0,
    figure_weak_toeplitz_03,
    figure_weak_toeplitz_05,
    figure_weak_toeplitz_07,
    rates,
    table_lowrank,
    table_sparse,
)
from thresher.paper.item import Item

ITEMS: dict[str, Item] = {
    module.ITEM.name: module.ITEM
    for module in (
        figure_weak_t0,
        figure_weak_s,
        figure_free_initial,
        table_sparse,
        figure_lowrank_r5,
        figure_lowrank_r15,
        table_lowrank,
        figure_lowrank_free_initial,
        figure_weak_independent,
        figure_weak_toeplitz_03,
        figure_weak_toeplitz_05,
        figure_weak_toeplitz_07,
        figure_strong,
        rates,
    )
}
